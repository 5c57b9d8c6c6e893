// Requests and answers with ZeroMQ, over a connection and inside of the process.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void *context;

static void die(const char *what) {
    printf("%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

// Answers three requests with their squares.
static void *answer(void *endpoint) {
    void *s = zmq_socket(context, ZMQ_REP);
    if (zmq_bind(s, endpoint) != 0)
        die("bind");
    for (int i = 0; i < 3; i++) {
        int n;
        if (zmq_recv(s, &n, sizeof n, 0) != sizeof n)
            die("receive a request");
        n *= n;
        zmq_send(s, &n, sizeof n, 0);
    }
    zmq_close(s);
    return 0;
}

static void ask(const char *endpoint) {
    pthread_t thread;
    pthread_create(&thread, 0, answer, (void *)endpoint);
    void *s = zmq_socket(context, ZMQ_REQ);
    if (zmq_connect(s, endpoint) != 0)
        die("connect");
    for (int i = 1; i <= 3; i++) {
        int n = 10 * i;
        zmq_send(s, &n, sizeof n, 0);
        if (zmq_recv(s, &n, sizeof n, 0) != sizeof n)
            die("receive an answer");
        printf("%s: %d\n", endpoint, n);
    }
    zmq_close(s);
    pthread_join(thread, 0);
}

int main(void) {
    context = zmq_ctx_new();
    ask("inproc://squares");
    ask("tcp://127.0.0.1:21313");
    zmq_ctx_term(context);
    return 0;
}
