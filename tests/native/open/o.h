#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <spawn.h>
#include <poll.h>
#include <mqueue.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/eventfd.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/select.h>
#include <sys/pidfd.h>
#ifdef JITTER
static void J(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); unsigned x=(t.tv_nsec/7)*2654435761u^getpid()*40503u; x^=x>>13; x*=0x5bd1e995; x^=x>>15; if(x&3){ struct timespec d={0,(x>>4)%400000}; syscall(SYS_nanosleep,&d,0);} }
#else
static void J(void){}
#endif
static void OUT(const char*f,...){ char b[400]; va_list v; va_start(v,f); int n=vsnprintf(b,390,f,v); va_end(v); b[n++]='\n'; char*e=getenv("OUTF"); int fd=e?open(e,O_WRONLY|O_APPEND|O_CREAT,0600):1; if(write(fd,b,n)!=n) abort(); }
static void h(int s){}
static void handle(int sig,int fl){ struct sigaction a={.sa_handler=h,.sa_flags=fl}; sigaction(sig,&a,0);}
static void *shared(void){return mmap(0,4096,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);}
#define E(x) ({ errno=0; long _r=(x); _r<0?-errno:_r; })
