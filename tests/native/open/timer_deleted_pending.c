#include "o.h"
int main(){ sigset_t s; sigemptyset(&s); sigaddset(&s,SIGALRM); sigprocmask(SIG_BLOCK,&s,0); struct itimerval i={{0,0},{0,200}},z={0},o; setitimer(ITIMER_REAL,&i,0); J(); setitimer(ITIMER_REAL,&z,&o); struct timespec d={0,0}; int r=E(sigtimedwait(&s,0,&d)); assert(r==-EAGAIN); }
