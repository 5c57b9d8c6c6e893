#include "o.h"
static int p[2]; static void*t(void*a){ char b; return (void*)E(read(p[0],&b,1)); }
int main(){ handle(SIGUSR1,0); pipe(p); pthread_t a,b; pthread_create(&a,0,t,0); pthread_create(&b,0,t,0); sigset_t s; sigemptyset(&s); sigaddset(&s,SIGUSR1); pthread_sigmask(SIG_BLOCK,&s,0); J(); kill(getpid(),SIGUSR1); J(); usleep(500); write(p[1],"xx",2); void*x,*y; pthread_join(a,&x); pthread_join(b,&y); assert((long)y!=-EINTR); }
