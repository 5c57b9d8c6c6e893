#include "o.h"
int main(){ sigset_t s; sigemptyset(&s); sigaddset(&s,SIGRTMIN); sigprocmask(SIG_BLOCK,&s,0); struct rlimit l; getrlimit(RLIMIT_SIGPENDING,&l); l.rlim_cur=0; setrlimit(RLIMIT_SIGPENDING,&l); int r=E(sigqueue(getpid(),SIGRTMIN,(union sigval){0})); assert(r==0); }
