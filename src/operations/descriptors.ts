import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../logging/logging.js';

const CHECK_MS = 1_000;

/**
 * Notices that the process is out of file descriptors. Node does not report this: libuv accepts each new connection
 * with a reserved descriptor and closes it.
 */
@Injectable()
export class Descriptors implements OnApplicationBootstrap, OnApplicationShutdown {
  /** How long no descriptor was left since the start, in seconds. */
  secondsWithout = 0;
  #lacksNow = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const lacked = this.#lacksNow;
    this.#lacksNow = !canOpen();
    if (this.#lacksNow) this.secondsWithout += CHECK_MS / 1000;
    if (this.#lacksNow && !lacked)
      this.logger.error('Out of file descriptors: new connections are closed without an answer');
    if (lacked && !this.#lacksNow) this.logger.warn('File descriptors are available again');
  }
}

function canOpen(): boolean {
  try {
    closeSync(openSync(devNull, 'r'));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'EMFILE' && code !== 'ENFILE';
  }
}
