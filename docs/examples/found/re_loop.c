// libre: its main loop, which SIGTERM ends.
#include <stdint.h>
#include <re.h>

static void on_signal(int number)
{
	(void)number;
	re_cancel();
}

int main(void)
{
	int error = libre_init();

	if (!error)
		error = re_main(on_signal);
	libre_close();
	return error;
}
