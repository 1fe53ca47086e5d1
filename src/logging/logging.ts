import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from '../config/config.js';
import { LogOutput } from './log-output.js';
import { serializeError } from './serialize-error.js';

export const LOGGER = Symbol('LOGGER');

/** @returns a logger that writes JSON lines to `stream` or to standard output, readable lines if that is a terminal. */
export function createLogger(config: Config['operations'], stream?: DestinationStream): Logger {
  const output =
    stream ??
    new LogOutput((lines) => logger.warn({ lines }, 'Log lines were dropped: the log reader fell behind'));
  const logger = pino({ level: config.logLevel, serializers: { err: serializeError } }, output);
  return logger;
}

/** Nest's own messages in the same log. Those about its start have the level `debug`. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}
  log(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ context: context.at(-1) }, String(message));
  }
  warn(message: unknown, ...context: unknown[]): void {
    this.logger.warn({ context: context.at(-1) }, String(message));
  }
  error(message: unknown, ...context: unknown[]): void {
    // The application also throws this error, and main.ts reports it.
    const level = context.at(-1) === 'NestApplication' ? 'debug' : 'error';
    this.logger[level](
      { context: context.at(-1) },
      message instanceof Error ? message.message : String(message),
    );
  }
}
