#include "o.h"
int main(){ sigset_t s; sigemptyset(&s); sigaddset(&s,SIGALRM); sigprocmask(SIG_BLOCK,&s,0); struct itimerval i={{0,0},{0,200}}; setitimer(ITIMER_REAL,&i,0); J(); sigset_t q; sigpending(&q); assert(!sigismember(&q,SIGALRM)); }
