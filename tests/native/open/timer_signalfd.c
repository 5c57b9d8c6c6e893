#include "o.h"
int main(){ sigset_t s; sigemptyset(&s); sigaddset(&s,SIGALRM); sigprocmask(SIG_BLOCK,&s,0); int f=signalfd(-1,&s,SFD_NONBLOCK); struct itimerval i={{0,0},{0,200}}; setitimer(ITIMER_REAL,&i,0); J(); struct signalfd_siginfo x; int r=E(read(f,&x,sizeof x)); assert(r==-EAGAIN); }
