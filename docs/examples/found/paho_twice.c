// paho: two threads make and take away a client each, ROUNDS times, as two independent parts of a program might.
#include <MQTTAsync.h>
#include <pthread.h>
#include <stdlib.h>

static int rounds;

static void *part(void *name)
{
	for (int i = 0; i < rounds; i++) {
		MQTTAsync client;

		if (!MQTTAsync_create(&client, "tcp://127.0.0.1:1999", name, MQTTCLIENT_PERSISTENCE_NONE, NULL))
			MQTTAsync_destroy(&client);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	rounds = argc > 1 ? atoi(argv[1]) : 1;
	pthread_create(&other, NULL, part, "a");
	part("b");
	pthread_join(other, NULL);
	return 0;
}
