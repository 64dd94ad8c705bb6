/* Getting the data sockets of all streams connected, on the server's and on the client's side. */
#ifndef PEAKMARK_NET_GATHER_H
#define PEAKMARK_NET_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/control.h"
#include "net/listener.h"
#include "net/plan.h"

/*
 * Server: tells the client where to connect, and fills sockets[plan->streams]. TCP streams come in
 * at the listener; a UDP socket takes the peer whose first datagram carries the run, from the
 * address of the control connection. False with a sentence in `error`.
 */
bool gather_server(const struct net_plan *plan, struct control *control, struct listener *listener,
                   int *sockets, char *error, size_t capacity);

/* Client: connects all streams; returns when the server has accepted them. */
bool gather_client(struct net_plan *plan, struct control *control, const struct key *key,
                   int *sockets, char *error, size_t capacity);

#endif
