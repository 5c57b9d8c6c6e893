#include "pre.h"
#include <sys/socket.h>
#include <sys/un.h>
static void*f(void*x){int s=socket(AF_UNIX,SOCK_STREAM,0); struct sockaddr_un a={AF_UNIX}; bind(s,(void*)&a,2); listen(s,1); int r=accept(s,0,0); assert(!"accept returned"); return 0;}
int main(){pthread_t t; void*r; pthread_create(&t,0,f,0); pthread_cancel(t); pthread_join(t,&r); assert(r==PTHREAD_CANCELED); return 0;}
