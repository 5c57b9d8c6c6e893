#include "pre.h"
static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER;
static void*f(void*x){int o; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS,&o); return 0;}
int main(){pthread_t t; void*r; pthread_create(&t,0,f,0); pthread_cancel(t); pthread_join(t,&r); assert(r!=PTHREAD_CANCELED); return 0;}
