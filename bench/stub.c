/* One large table behind DynamoDB's protocol, as quick as a client can ask: HTTP/1.1 on loopback,
   one thread, epoll (so Linux only). Keeps nothing of a request: what a page holds follows from
   where it begins.

   The table `Stub` has `keys` partition keys k000000000, k000000001, ... in the order of their
   hashes, spread evenly, each with `items` items (sort keys 000000, 000001, ...) of `bytes` bytes.
   It answers DescribeTable and Scan, each after `latency` microseconds, and charges half a unit for
   each started 4 KB, at least one half. With `rate` it serves so many read units a second, and
   `burst` of them at once: a Scan is refused while nothing is left, and the last one may go beyond.

   Prints its port. When its standard input closes it prints what it has served, as JSON, and ends.
*/
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES (1 << 20)
#define IN_BYTES 65536 /* of a request: a start key with the greatest sort key has some 3 KB */
#define TENTHS 36000   /* an hour is told of */
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/Stub"

static long keys = 1000000, items = 1000, bytes = 500, latency = 0, rate = 0, burst = 0;

static const struct {
  const char *name;
  long *value, least, most;
} SETTINGS[] = {
    {"--keys", &keys, 1, 1000000000},      {"--items", &items, 1, 1000000},
    {"--bytes", &bytes, 32, 400 * 1024},   {"--latency", &latency, 0, 60000000},
    {"--rate", &rate, 0, 1000000000},      {"--burst", &burst, 0, 1000000000},
};

struct connection {
  int fd;              /* -1: gone, while its answer waits in the queue */
  bool queued, writes; /* writes: more of the answer is left than the socket took */
  long long due;
  struct connection *next;
  size_t have, size, filled, sent;
  char *out;
  char in[IN_BYTES];
};

static struct {
  long scans, throttled, items;
  double units;
} tenths[TENTHS];
static long long began; /* the first Scan, in microseconds of the monotonic clock; 0: none yet */
static long last_tenth, in_flight, most_in_flight;
static double tokens;
static long long filled_at;
static int events;
static struct connection *first, *last; /* all wait equally long: first in, first out */

static _Noreturn void fail(const char *what) {
  perror(what);
  exit(1);
}

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* What a member of a JSON object holds, or NULL. Its name must not occur as a name elsewhere. */
static const char *member(const char *text, const char *name) {
  size_t length = strlen(name);
  while ((text = strstr(text, name))) {
    text += length;
    const char *value = text + strspn(text, " ");
    if (*value == ':') return value + 1 + strspn(value + 1, " ");
  }
  return NULL;
}

static long number_of(const char *text, const char *name, long otherwise) {
  const char *value = member(text, name);
  return value ? strtol(value, NULL, 10) : otherwise;
}

/* The number that a typed string such as {"S": "k000000012"} consists of, -1 if of anything else. */
static long digits_of(const char *value, const char *before, int count) {
  if (!value || !(value = member(value, "\"S\"")) || *value++ != '"') return -1;
  size_t length = strlen(before);
  if (strncmp(value, before, length)) return -1;
  value += length;
  if ((int)strspn(value, "0123456789") != count || value[count] != '"') return -1;
  return strtol(value, NULL, 10);
}

static void put_digits(char *at, long number, int count) {
  while (count--) {
    at[count] = (char)('0' + number % 10);
    number /= 10;
  }
}

/* Room for the answer; its head is written once its length is known. */
#define HEAD_BYTES 256
static void reserve(struct connection *c, size_t body) {
  size_t wanted = HEAD_BYTES + body;
  if (c->size < wanted) {
    free(c->out);
    if (!(c->out = malloc(wanted))) fail("memory");
    c->size = wanted;
  }
  c->filled = HEAD_BYTES;
}

static void finish(struct connection *c, int status) {
  char head[HEAD_BYTES];
  int length = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\nServer: Server\r\n"
                        "Content-Type: application/x-amz-json-1.0\r\nContent-Length: %zu\r\n"
                        "Connection: keep-alive\r\nx-amzn-RequestId: %s\r\n\r\n",
                        status, status == 200 ? "OK" : "Bad Request", c->filled - HEAD_BYTES,
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ");
  c->sent = HEAD_BYTES - (size_t)length;
  memcpy(c->out + c->sent, head, (size_t)length);
}

#define SAY(c, ...) \
  ((c)->filled += (size_t)snprintf((c)->out + (c)->filled, (c)->size - (c)->filled, __VA_ARGS__))

static void refuse(struct connection *c, const char *code, const char *message, const char *more) {
  reserve(c, 1024);
  SAY(c, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":\"%s\"%s}", code, message,
      more);
  finish(c, 400);
}

static void describe(struct connection *c) {
  reserve(c, 2048);
  SAY(c,
      "{\"Table\":{\"TableName\":\"Stub\",\"TableStatus\":\"ACTIVE\",\"TableArn\":\"" ARN "\","
      "\"TableId\":\"01234567-89ab-cdef-0123-456789abcdef\",\"CreationDateTime\":1795348800.0,"
      "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},"
      "{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"}],"
      "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},"
      "{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"}],"
      "\"ItemCount\":%lld,\"TableSizeBytes\":%lld,",
      (long long)keys * items, (long long)keys * items * bytes);
  if (rate)
    SAY(c, "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%ld,\"WriteCapacityUnits\":1}}}", rate);
  else
    SAY(c, "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"}}}");
  finish(c, 200);
}

static bool is_admitted(long long moment, double units) {
  if (!rate) return true;
  tokens += (double)rate * (double)(moment - filled_at) / 1e6;
  filled_at = moment;
  if (tokens > (double)burst) tokens = (double)burst;
  if (tokens <= 0) return false;
  tokens -= units;
  return true;
}

static void scan(struct connection *c, const char *body) {
  long segments = number_of(body, "\"TotalSegments\"", 1);
  long segment = number_of(body, "\"Segment\"", 0);
  long limit = number_of(body, "\"Limit\"", PAGE_BYTES);
  if (segments < 1 || segments > 1000000 || segment < 0 || segment >= segments || limit < 1) {
    refuse(c, "ValidationException", "Segment, TotalSegments or Limit is out of bounds", "");
    return;
  }
  long key = (segment * keys + segments - 1) / segments;
  long end = ((segment + 1) * keys + segments - 1) / segments;
  long position = 0; /* within the key's items */
  const char *start = member(body, "\"ExclusiveStartKey\"");
  if (start) {
    long from = digits_of(member(start, "\"pk\""), "k", 9);
    if (from < key || from >= end) {
      refuse(c, "ValidationException", "The provided starting key is invalid", "");
      return;
    }
    /* A sort key that is none of the table's is the greatest one. */
    long after = digits_of(member(start, "\"sk\""), "", 6);
    key = after < 0 || after + 1 >= items ? from + 1 : from;
    position = key == from ? after + 1 : 0;
  }
  long left = (end - key) * items - position, most = (PAGE_BYTES + bytes - 1) / bytes;
  long count = left < limit ? left : limit;
  if (count > most) count = most;
  double units = 0.5 * (double)((count * bytes + 4095) / 4096);
  if (units < 0.5) units = 0.5;

  long long moment = now();
  if (!began) began = moment;
  long tenth = (long)((moment - began) / 100000);
  if (tenth >= TENTHS) tenth = TENTHS - 1;
  last_tenth = tenth;
  if (!is_admitted(moment, units)) {
    tenths[tenth].throttled++;
    refuse(c, "ProvisionedThroughputExceededException",
           "The level of configured provisioned throughput for the table was exceeded. Consider "
           "increasing your provisioning level with the UpdateTable API.",
           ",\"ThrottlingReasons\":[{\"reason\":\"TableReadProvisionedThroughputExceeded\","
           "\"resource\":\"" ARN "\"}]");
    return;
  }
  tenths[tenth].scans++;
  tenths[tenth].items += count;
  tenths[tenth].units += units;

  char item[] = "{\"pk\":{\"S\":\"k000000000\"}},";
  const size_t length = sizeof item - 1;
  reserve(c, (size_t)count * length + 512);
  SAY(c, "{\"Items\":[");
  for (long number = 0; number < count; number++) {
    if (number == 0 || position == items) {
      if (position == items) key++, position = 0;
      put_digits(item + 13, key, 9);
    }
    position++;
    memcpy(c->out + c->filled, item, length);
    c->filled += length;
  }
  if (count) c->filled--; /* the last comma */
  SAY(c, "],\"Count\":%ld,\"ScannedCount\":%ld,", count, count);
  if (count && (count == limit || count == most))
    SAY(c, "\"LastEvaluatedKey\":{\"pk\":{\"S\":\"k%09ld\"},\"sk\":{\"S\":\"%06ld\"}},", key,
        position - 1);
  SAY(c, "\"ConsumedCapacity\":{\"TableName\":\"Stub\",\"CapacityUnits\":%.1f}}", units);
  finish(c, 200);
}

static void drop(struct connection *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  if (c->queued) return; /* it goes with its answer */
  free(c->out);
  free(c);
}

static void watch(struct connection *c, int operation, unsigned for_what) {
  struct epoll_event event = {.events = for_what, .data.ptr = c};
  if (epoll_ctl(events, operation, c->fd, &event)) fail("epoll_ctl");
}

static void send_answer(struct connection *c) {
  while (c->sent < c->filled) {
    ssize_t took = write(c->fd, c->out + c->sent, c->filled - c->sent);
    if (took < 0 && errno == EINTR) continue;
    if (took < 0 && errno == EAGAIN) {
      if (!c->writes) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      c->writes = true;
      return;
    }
    if (took < 0) {
      drop(c);
      return;
    }
    c->sent += (size_t)took;
  }
  if (c->writes) watch(c, EPOLL_CTL_MOD, EPOLLIN);
  c->writes = false;
}

static void answer(struct connection *c, const char *head, const char *body) {
  const char *target = strcasestr(head, "\nx-amz-target:");
  const char *operation = target ? strchr(target, '.') : NULL;
  if (operation && !strncmp(operation, ".Scan\r", 6))
    scan(c, body);
  else if (operation && !strncmp(operation, ".DescribeTable\r", 15))
    describe(c);
  else
    refuse(c, "UnknownOperationException", "The stub answers Scan and DescribeTable only", "");
  if (++in_flight > most_in_flight) most_in_flight = in_flight;
  if (!latency) {
    in_flight--;
    send_answer(c);
    return;
  }
  c->due = now() + latency;
  c->queued = true;
  c->next = NULL;
  if (first)
    last->next = c;
  else
    first = c;
  last = c;
}

static void receive(struct connection *c) {
  ssize_t got = read(c->fd, c->in + c->have, IN_BYTES - 1 - c->have);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) { /* closed, or more than a request may have */
    drop(c);
    return;
  }
  c->have += (size_t)got;
  c->in[c->have] = 0;
  char *body = strstr(c->in, "\r\n\r\n");
  if (!body) return;
  *body = 0; /* so that nothing of the body is taken for a header */
  const char *header = strcasestr(c->in, "\ncontent-length:");
  size_t length = header ? strtoul(header + 16, NULL, 10) : 0;
  const char *head = c->in;
  body += 4;
  if (c->have < (size_t)(body - head) + length) {
    body[-4] = '\r';
    return;
  }
  c->have = 0; /* clients send the next request after the answer only */
  answer(c, head, body);
}

static void accept_all(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    struct connection *c = calloc(1, sizeof *c);
    if (!c) fail("memory");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->fd = fd;
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static void send_what_is_due(void) {
  for (long long moment = now(); first && first->due <= moment;) {
    struct connection *c = first;
    first = c->next;
    c->queued = false;
    in_flight--;
    if (c->fd < 0)
      drop(c);
    else
      send_answer(c);
  }
}

static void report(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  printf("{\"cpu_seconds\":%.6f,\"began\":%.6f,\"most_in_flight\":%ld,\"tenths\":[", seconds,
         (double)began / 1e6, most_in_flight);
  for (long at = 0; began && at <= last_tenth; at++)
    printf("%s[%ld,%ld,%ld,%.1f]", at ? "," : "", tenths[at].scans, tenths[at].throttled,
           tenths[at].items, tenths[at].units);
  printf("]}\n");
  fflush(stdout);
}

static int listen_on_loopback(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) ||
      listen(listener, 4096) || getsockname(listener, (struct sockaddr *)&address, &length))
    fail("listen");
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

static void read_settings(int count, char **given) {
  for (int at = 1; at < count; at += 2) {
    size_t which = 0, all = sizeof SETTINGS / sizeof *SETTINGS;
    while (which < all && strcmp(SETTINGS[which].name, given[at])) which++;
    char *end = NULL;
    long value = at + 1 < count ? strtol(given[at + 1], &end, 10) : 0;
    if (which == all || !end || !*given[at + 1] || *end || value < SETTINGS[which].least ||
        value > SETTINGS[which].most) {
      fprintf(stderr, "stub: %s is no setting, or its value is missing or out of bounds\n",
              given[at]);
      exit(2);
    }
    *SETTINGS[which].value = value;
  }
  if (!burst) burst = rate;
  tokens = (double)burst;
  filled_at = now();
}

int main(int count, char **given) {
  read_settings(count, given);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the parent decides */
  struct rlimit files;
  if (!getrlimit(RLIMIT_NOFILE, &files)) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if ((events = epoll_create1(0)) < 0) fail("epoll");
  static struct connection input, door; /* stand for the other two that are watched */
  input.fd = STDIN_FILENO;
  watch(&input, EPOLL_CTL_ADD, EPOLLIN);
  door.fd = listen_on_loopback();
  watch(&door, EPOLL_CTL_ADD, EPOLLIN);
  for (;;) {
    long long wait = first ? first->due - now() : 0;
    struct timespec left = {wait > 0 ? wait / 1000000 : 0, wait > 0 ? wait % 1000000 * 1000 : 0};
    struct pollfd one = {.fd = events, .events = POLLIN}; /* epoll_wait knows milliseconds only */
    ppoll(&one, 1, first ? &left : NULL, NULL);
    struct epoll_event got[256];
    int ready = epoll_wait(events, got, 256, 0);
    for (int at = 0; at < ready; at++) {
      struct connection *c = got[at].data.ptr;
      if (c == &door)
        accept_all(door.fd);
      else if (c == &input) {
        if (read(STDIN_FILENO, input.in, IN_BYTES) > 0) continue;
        report();
        return 0;
      } else if (got[at].events & EPOLLOUT)
        send_answer(c);
      else
        receive(c);
    }
    send_what_is_due();
  }
}
