#include "pre.h"
#include <sys/epoll.h>
static int p[2];
static void*f(void*x){int e=epoll_create1(0); struct epoll_event v={EPOLLOUT}; epoll_ctl(e,1,p[1],&v); epoll_wait(e,&v,1,-1); return 0;}
int main(){pthread_t t; void*r; pipe(p); pthread_create(&t,0,f,0); pthread_cancel(t); pthread_join(t,&r);  int fd=open("/dev/null",O_RDONLY); close(fd); return 0;}
