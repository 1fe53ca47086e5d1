import { STATUS_CODES } from 'node:http';
import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { Failure, RequestAborted } from '../errors/failure.js';
import { sendFailure } from '../errors/send-failure.js';
import type { Operations } from '../openapi/operations.js';

/** Answers whatever is thrown while a request is handled. Any other error becomes a {@link Failure} here. */
@Catch()
export class FailureFilter implements ExceptionFilter {
  constructor(
    private readonly operations: Operations,
    private readonly logger: Logger,
  ) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const failure = exception instanceof Failure ? exception : failureOf(exception, request);
    const { error, message, cause, log } = failure;
    // The request failed below Express too, and was answered and logged there.
    if (response.writableEnded) return;
    if (log !== undefined) this.logger[log]({ err: cause, requestId: request.id, error }, message);
    if (response.headersSent || failure instanceof RequestAborted) {
      response.locals.error = error;
      request.socket.destroy();
      return;
    }
    sendFailure(response, failure, this.operations.statusOf(request.method, request.path, error));
  }
}

/** @returns the message for a path without a route. Nest's and Express's own messages repeat the path. */
const unrouted = (error: number) =>
  error === 404 ? 'There is nothing at this path' : 'The path has an invalid percent-encoding';

/** Converts what Nest, Express and their middleware throw. Anything else is a bug and is logged with its stack. */
function failureOf(exception: unknown, request: Request): Failure {
  if (exception instanceof HttpException) {
    const error = exception.getStatus();
    if (error < 500)
      return new Failure(error, request.route === undefined ? unrouted(error) : exception.message);
  }
  // Express and its middleware mark a fault of the request with a `status` (the http-errors convention).
  const status = (exception as { status?: unknown } | null | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new Failure(status, STATUS_CODES[status] ?? 'The request cannot be served');
  const message = 'The service failed; this is a fault of the service and not of the request';
  return new Failure(500, message, { cause: exception, log: 'error' });
}
