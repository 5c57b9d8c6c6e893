#include "pre.h"
int main(){ sigset_t s,p; sigemptyset(&s); sigaddset(&s,SIGALRM); sigprocmask(SIG_BLOCK,&s,0); struct itimerval v={{0,0},{0,100}}; setitimer(ITIMER_REAL,&v,0); 
#ifdef JITTER
 for(volatile int i=0;i<2000000;i++);
#endif
 sigpending(&p); assert(!sigismember(&p,SIGALRM)); return 0;}
