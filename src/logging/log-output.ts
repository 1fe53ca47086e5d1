import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { DestinationStream } from 'pino';
import { prettyLine } from './pretty-line.js';

const STDOUT = 1;
/** How much a pipe takes in one piece (POSIX's PIPE_BUF on Linux). */
const CHUNK_LENGTH = 4_096;
const FLUSH_INTERVAL_MS = 200;
/** A slow reader can take more soon. A pipe without a reader and a full disk last longer. */
const SLOW_READER_RETRY_MS = 10;
const FAILURE_RETRY_MS = 1_000;
/** If more characters than this wait, lines are dropped, so that neither time nor memory is lost to the log. */
const MAX_WAITING_LENGTH = 4 * 1024 * 1024;
/** How long the process's exit waits for a reader to take the last lines. */
const LAST_LINES_MS = 1_000;

/**
 * Writes log lines to standard output. Lines wait for a moment and are written together, since a single write costs 25
 * to 50 µs. Lines that still wait are written when the process exits.
 *
 * A slow reader, a reader that is gone or a full disk only costs lines. Pino's own destination would end the process if
 * a write fails, and never reach that exit.
 */
export class LogOutput implements DestinationStream {
  /** How many lines this process has dropped. */
  static dropped = 0;

  /** At a terminal, lines are written at once and readable instead of JSON. */
  readonly #isTerminal = isatty(STDOUT);
  #waiting = '';
  /** How many lines were dropped since the last report. */
  #droppedLately = 0;
  /** What the last write did not take. */
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

  /** @returns undefined if everything is written, else the error's code: EAGAIN if the reader is slow. */
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
