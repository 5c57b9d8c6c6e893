// Thrift: a timer manager whose threads are not detached is started and stopped. With MS the program goes on for so long.
#include <unistd.h>
#include <cstdlib>
#include <memory>
#include <thrift/concurrency/ThreadFactory.h>
#include <thrift/concurrency/TimerManager.h>
using namespace apache::thrift::concurrency;

int main(int argc, char **argv)
{
	{
		TimerManager timers;

		timers.threadFactory(std::make_shared<ThreadFactory>(false));
		timers.start();
		timers.stop();
	}
	usleep(argc > 1 ? 1000 * atoi(argv[1]) : 0);
}
