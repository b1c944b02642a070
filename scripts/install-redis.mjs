/**
 * Finds redis-server for the tests of the queue and installs Debian's package where that is possible.
 *
 *   node scripts/install-redis.mjs          prints the path of the program; installs it first if need be
 *   node scripts/install-redis.mjs --find   only looks
 *
 * REDIS_SERVER_PATH names the program; otherwise it is looked for where Debian puts it.
 */
import { provide } from "./debianProgram.mjs";

provide({
  title: "redis-server",
  debian: "redis-server",
  usual: "/usr/bin/redis-server",
  variable: "REDIS_SERVER_PATH",
});
