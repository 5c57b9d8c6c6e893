#include "pre.h"
int main(){sigset_t s; sigemptyset(&s); sigaddset(&s,SIGALRM); sigprocmask(SIG_BLOCK,&s,0); alarm(10); struct timespec z={0,0}; int r=sigtimedwait(&s,0,&z); assert(r==SIGALRM); return 0;}
