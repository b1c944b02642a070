/**
 * `fwm` as a child of the studio: the same program on the same line. "stop" is ^C to it; and when the studio is gone, in
 * whatever way, the run is saved as by ^C.
 */
let isStopping = false;

function stop(): void {
  if (isStopping) return;
  isStopping = true;
  // Before the program listens there is nothing to save.
  if (!process.emit("SIGINT")) process.exit(130);
}

process.on("message", (message) => {
  if (message === "stop") stop();
});
process.on("disconnect", stop);
// The studio's messages alone do not keep a finished program alive.
process.channel?.unref();

await import("../../cli/main.ts");

export {};
