#include "pre.h"
#include <dlfcn.h>
pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER;int o;
void*f(void*a){void*l=dlopen("libm.so.6",RTLD_NOW);pthread_mutex_lock(&m);o=o*2+1;pthread_mutex_unlock(&m);dlclose(l);return 0;}
int main(){pthread_t t;pthread_create(&t,0,f,0);void*l=dlopen("libm.so.6",RTLD_NOW);pthread_mutex_lock(&m);o=o*2+2;pthread_mutex_unlock(&m);dlclose(l);pthread_join(t,0);assert(o==4||o==5);return 0;}
