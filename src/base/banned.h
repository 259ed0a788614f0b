/* SPDX-License-Identifier: Apache-2.0 */
/* Included first in every file by the build: functions that make it easy to forget a bound do not compile. */
#ifndef STEAD_BASE_BANNED_H
#define STEAD_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets atoi atol atoll

#endif
