/* SPDX-License-Identifier: GPL-3.0-or-later */
extern int gpgtar_placeholder;
int gpgtar_placeholder;
