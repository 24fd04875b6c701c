/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pgp: the only header of this folder that gpgtar/ includes. */
#ifndef PGP_PGP_H
#define PGP_PGP_H

#include "agent.h"
#include "algo.h"
#include "certificate.h"
#include "crypt_init.h"
#include "key_spec.h"
#include "keyboxd.h"
#include "keystore.h"
#include "message_read.h"
#include "message_write.h"
#include "preference.h"
#include "secret.h"
#include "trustdb.h"

#endif
