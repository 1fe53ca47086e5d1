import { STATUS_CODES } from 'node:http';
import {
  Catch,
  HttpException,
  HttpStatus,
  UnprocessableEntityException,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { abandonBody } from '../connection/abandoned-body.js';
import { ACCEPT_ENCODING, RequestAbortedError } from '../json-body/request-body.js';
import { sendError } from '../errors/send-error.js';

/**
 * The one place that turns a failure into a response: always the contract's Error body, never anything internal.
 * A bug (500) is logged here, once, with its stack.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  /**
   * @param operations the contract's operations, such as `POST /plants`. They declare 400 for every failure that the
   *   request causes, and 401: there the status is 400, and `error` alone tells the kinds apart.
   */
  constructor(
    private readonly operations: ReadonlySet<string>,
    private readonly logger: Logger,
  ) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const { error, message } = describe(exception);
    response.locals.error = error;
    // What cannot be served for now (503) is logged where that is found out, once for all the requests that it fails.
    if (error >= 500 && error !== 503)
      this.logger.error({ err: exception, requestId: request.id, error }, message);
    // What the database refuses of a request is logged for whoever has to find out why.
    if (exception instanceof UnprocessableEntityException && exception.cause !== undefined)
      this.logger.warn({ err: exception.cause, requestId: request.id, error }, message);
    if (response.headersSent || exception instanceof RequestAbortedError) {
      request.socket.destroy();
      return;
    }
    if (error === 415)
      response.setHeader('Accept', 'application/json').setHeader('Accept-Encoding', ACCEPT_ENCODING);
    const declared =
      error === 401 || error >= 500 || !this.operations.has(`${request.method} ${request.path}`);
    abandonBody(request);
    sendError(response, declared ? error : HttpStatus.BAD_REQUEST, error, message);
  }
}

function describe(exception: unknown): { error: number; message: string } {
  if (exception instanceof RequestAbortedError) return { error: 400, message: exception.message };
  if (exception instanceof HttpException) {
    const error = exception.getStatus();
    // Nest's own message for this repeats the path.
    return { error, message: error === 404 ? 'Nothing is at this path' : exception.message };
  }
  // Express and its middlewares tell a fault of the request by a `status` (the http-errors convention).
  const status = (exception as { status?: unknown } | null | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { error: status, message: STATUS_CODES[status] ?? 'The request cannot be served' };
  }
  return { error: 500, message: 'The service failed; this is a fault of the service and not of the request' };
}
