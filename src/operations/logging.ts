import type { LoggerService } from '@nestjs/common';
import { destination, pino, type DestinationStream, type Logger } from 'pino';
import { QueryFailedError } from 'typeorm';
import type { Config } from '../config/config.js';

export const LOGGER = Symbol('LOGGER');

/** Lines wait in memory for at most this many milliseconds, or this many bytes: one written at once costs 25 to 50 µs. */
const FLUSH_INTERVAL_MS = 200;
const BUFFER_BYTES = 8 * 1024;

/** JSON lines to standard output, buffered; {@link flushLogs} writes what waits. */
export function createLogger(config: Config['operations'], stream?: DestinationStream): Logger {
  const options = { level: config.logLevel, serializers: { err: errorWithoutValues } };
  if (stream !== undefined) return pino(options, stream);
  return pino(
    options,
    destination({ minLength: BUFFER_BYTES, periodicFlush: FLUSH_INTERVAL_MS, sync: false }),
  );
}

/** Writes the lines that wait. For every way that the process ends. */
export function flushLogs(logger: Logger): void {
  try {
    logger.flush();
  } catch {
    // The stream is not open yet, or already gone: there is nowhere to write to.
  }
}

/** SQLSTATE classes whose messages may repeat a value: data exception, constraint and view violation, a trigger's own. */
const MAY_REPEAT_VALUES = /^(22|23|44|P0)...$/;

/**
 * What the logs tell of an error: its type, message, stack and causes, of a database error the SQLSTATE and the
 * constraint. Never what else hangs on it: TypeORM and pg attach the statement, its values and the row that failed.
 */
export function errorWithoutValues(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  if (error instanceof QueryFailedError) return errorWithoutValues(error.driverError);
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const mayRepeatValues = typeof code === 'string' && MAY_REPEAT_VALUES.test(code);
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    ...(typeof constraint === 'string' && { constraint }),
    message: mayRepeatValues ? 'left out, since it may repeat a value' : error.message,
    ...(!mayRepeatValues && { stack: error.stack }),
    ...(error.cause !== undefined && { cause: errorWithoutValues(error.cause) }),
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
