#include "pre.h"
#include <sys/syscall.h>
static int ff; static char r1[3],r2[3];
static void*f(void*x){read(ff,x,2);return 0;}
int main(int c,char**v){
 switch(v[1][0]){
 case 't': ff=fileno(tmpfile()); break;
 case 'O': ff=open("/tmp",O_TMPFILE|O_RDWR,0600); break;
 case 'm': ff=memfd_create("x",0); break;
 case 's': ff=shm_open("/hbx",O_CREAT|O_RDWR,0600); shm_unlink("/hbx"); break;
 case 'd': {char n[]="/dev/shm/hbXXXXXX"; ff=mkstemp(n); unlink(n);} break;
 case 'n': {char n[]="/tmp/hbXXXXXX"; ff=mkstemp(n); rename(n,"/tmp/hbren"); } break;
 case 'x': {char n[]="/tmp/hbXXXXXX"; ff=mkstemp(n); link(n,"/tmp/hblnk"); int q=open("/tmp/hblnk",O_RDWR); unlink(n); unlink("/tmp/hblnk"); write(q,"abcd",4); close(q);} break;
 case '0': ff=0; break;
 }
 if(ff<0) {perror("");return 2;}
 if(v[1][0]!='0'&&v[1][0]!='x') write(ff,"abcd",4); lseek(ff,0,0); pthread_t a,b; pthread_create(&a,0,f,r1);pthread_create(&b,0,f,r2); pthread_join(a,0);pthread_join(b,0); 
 unlink("/tmp/hbren");
 assert(r1[0]=='a'); return 0;}
