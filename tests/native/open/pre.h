#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <errno.h>
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
static void h(int s){}
static void handle(int sig,int fl){ struct sigaction a={.sa_handler=h,.sa_flags=fl}; sigaction(sig,&a,0);}
static void *shared(void){return mmap(0,4096,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);}
