import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { DestinationStream } from 'pino';
import { prettyLine } from './pretty-line.js';

const STDOUT = 1;
/** What a pipe takes in one piece (POSIX's PIPE_BUF on Linux). */
const CHUNK_LENGTH = 4_096;
const FLUSH_INTERVAL_MS = 200;
/** A reader that is slow is asked again soon; a pipe without a reader or a full disk stays so for longer. */
const SLOW_READER_RETRY_MS = 10;
const FAILURE_RETRY_MS = 1_000;
/** Beyond this many characters that wait, lines are dropped: the service is not slowed and its memory not filled. */
const MAX_WAITING_LENGTH = 4 * 1024 * 1024;
/** How long the end of the process is held up for a reader that does not take the last lines. */
const LAST_LINES_MS = 1_000;

/**
 * Standard output as the place of log lines. They wait for a moment and are written together, since a line written
 * alone costs 25 to 50 µs; what waits at the end of the process is written then, whatever ends it.
 *
 * A slow reader, a reader that is gone or a full disk costs lines and nothing else. Pino's own destination would end the
 * process if a write fails, and never get to that end.
 */
export class LogOutput implements DestinationStream {
  /** Lines that this process dropped since its start. */
  static dropped = 0;

  /** A person who watches is not kept waiting, and reads lines rather than JSON. */
  readonly #isTerminal = isatty(STDOUT);
  #waiting = '';
  /** How many were dropped since there was room. */
  #droppedLately = 0;
  /** The rest of what a write did not take. */
  #rest = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;

  /** @param onDropped called with the number of lines that were dropped, once there is room again. */
  constructor(private readonly onDropped: (lines: number) => void) {
    process.on('exit', () => {
      const deadline = performance.now() + LAST_LINES_MS;
      while (this.#send() === 'EAGAIN' && performance.now() < deadline);
    });
  }

  write(line: string): void {
    if (this.#waiting.length > MAX_WAITING_LENGTH) {
      this.#droppedLately++;
      LogOutput.dropped++;
      return;
    }
    this.#waiting += this.#isTerminal ? prettyLine(line) : line;
    if (this.#rest.length === 0 && (this.#isTerminal || this.#waiting.length >= CHUNK_LENGTH)) this.#flush();
    else this.#flushAfter(FLUSH_INTERVAL_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const fault = this.#send();
    if (fault !== undefined) {
      this.#flushAfter(fault === 'EAGAIN' ? SLOW_READER_RETRY_MS : FAILURE_RETRY_MS);
    } else if (this.#droppedLately > 0) {
      const lines = this.#droppedLately;
      this.#droppedLately = 0;
      this.onDropped(lines);
    }
  }

  #flushAfter(milliseconds: number): void {
    this.#timer ??= setTimeout(() => this.#flush(), milliseconds).unref();
  }

  /** @returns the code of the error that keeps it from writing everything: EAGAIN if a reader is slow. */
  #send(): string | undefined {
    try {
      while (this.#rest.length > 0 || this.#waiting !== '') {
        if (this.#rest.length === 0) {
          this.#rest = Buffer.from(this.#waiting);
          this.#waiting = '';
        }
        this.#rest = this.#rest.subarray(writeSync(STDOUT, this.#rest));
      }
      return undefined;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'unknown';
    }
  }
}
