// log4cplus: an asynchronous appender is closed while another thread logs to it.
#include <log4cplus/asyncappender.h>
#include <log4cplus/initializer.h>
#include <log4cplus/logger.h>
#include <log4cplus/loggingmacros.h>
#include <log4cplus/nullappender.h>
#include <thread>
using namespace log4cplus;

int main()
{
	Initializer initializer;
	SharedAppenderPtr sink(new NullAppender), queue(new AsyncAppender(sink, 1));
	Logger logger = Logger::getInstance(LOG4CPLUS_TEXT("x"));

	logger.addAppender(queue);
	std::thread other([&] {
		LOG4CPLUS_ERROR(logger, "a");
		threadCleanup();
	});
	queue->close();
	other.join();
}
