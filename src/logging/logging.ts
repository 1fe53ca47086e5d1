import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import { QueryFailedError } from 'typeorm';
import type { Config } from '../config/config.js';
import { LogOutput } from './log-output.js';

export const LOGGER = Symbol('LOGGER');

/** JSON lines to standard output, or to `stream`. */
export function createLogger(config: Config['operations'], stream?: DestinationStream): Logger {
  const output =
    stream ??
    new LogOutput((lines) =>
      logger.warn({ lines }, 'Log lines were dropped, for what reads the log did not keep up'),
    );
  const logger = pino({ level: config.logLevel, serializers: { err: serializeError } }, output);
  return logger;
}

/** SQLSTATE classes whose messages may repeat a value: data exception, constraint and view violation, a trigger's own. */
const MAY_REPEAT_VALUES = /^(22|23|44|P0)...$/;

/**
 * What the logs tell of an error: its type, message, stack and causes, of a database error the SQLSTATE and the
 * constraint. Never what else hangs on it: TypeORM and pg attach the statement, its values and the row that failed.
 */
export function serializeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  if (error instanceof QueryFailedError) return serializeError(error.driverError);
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const mayRepeatValues = typeof code === 'string' && MAY_REPEAT_VALUES.test(code);
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    ...(typeof constraint === 'string' && { constraint }),
    message: mayRepeatValues ? 'left out, since it may repeat a value' : error.message,
    ...(!mayRepeatValues && { stack: error.stack }),
    ...(error.cause !== undefined && { cause: serializeError(error.cause) }),
  };
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
    this.logger.error(
      { context: context.at(-1) },
      message instanceof Error ? message.message : String(message),
    );
  }
}
