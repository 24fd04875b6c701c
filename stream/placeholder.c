/* SPDX-License-Identifier: GPL-3.0-or-later */
extern int stream_placeholder;
int stream_placeholder;
