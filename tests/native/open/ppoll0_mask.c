#include "o.h"
int main(){ handle(SIGUSR1,0); sigset_t s,o; sigemptyset(&s); sigaddset(&s,SIGUSR1); sigprocmask(SIG_BLOCK,&s,&o); raise(SIGUSR1); struct timespec z={0,0}; int r=E(ppoll(0,0,&z,&o)); assert(r!=-EINTR); }
