import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from '../config/config.js';
import { LogOutput } from './log-output.js';
import { serializeError } from './serialize-error.js';

export const LOGGER = Symbol('LOGGER');

/** JSON lines to standard output (at a terminal lines to read), or to `stream`. */
export function createLogger(config: Config['operations'], stream?: DestinationStream): Logger {
  const output =
    stream ??
    new LogOutput((lines) => logger.warn({ lines }, 'Log lines were dropped: the log reader fell behind'));
  const logger = pino({ level: config.logLevel, serializers: { err: serializeError } }, output);
  return logger;
}

/** Nest's own messages, in the same log: what it says of its start is for `debug`. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}
  log(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ context: context.at(-1) }, String(message));
  }
  warn(message: unknown, ...context: unknown[]): void {
    this.logger.warn({ context: context.at(-1) }, String(message));
  }
  error(message: unknown, ...context: unknown[]): void {
    // The application throws what it logs, and main.ts tells it.
    const level = context.at(-1) === 'NestApplication' ? 'debug' : 'error';
    this.logger[level](
      { context: context.at(-1) },
      message instanceof Error ? message.message : String(message),
    );
  }
}
