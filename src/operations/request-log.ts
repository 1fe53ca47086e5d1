import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { requestIdOf } from '../http/request-id.js';
import type { Metrics } from './metrics.js';

/** W3C Trace Context: version, trace id, parent id, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/**
 * One log line and one observation for each request, when its response has ended. The path is told by its route's
 * template alone: what the client wrote (path, query, headers, body) is not for the logs.
 */
export function requestLog(logger: Logger, metrics: Metrics) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const started = performance.now();
    request.id = requestIdOf(request);
    response.setHeader('X-Request-Id', request.id);
    response.once('close', () => {
      const milliseconds = performance.now() - started;
      const route = (request.route as { path: string } | undefined)?.path ?? 'unmatched';
      metrics.observeRequest(request.method, route, response.statusCode, milliseconds);
      if (!logger.isLevelEnabled('info')) return;
      const trace = TRACEPARENT.exec(String(request.headers.traceparent));
      logger.info(
        {
          requestId: request.id,
          method: request.method,
          route,
          status: response.statusCode,
          error: response.locals.error as number | undefined,
          durationMs: Math.round(milliseconds * 1000) / 1000,
          client: request.ip,
          subject: request.user?.subject,
          ...(trace && { traceId: trace[1], parentSpanId: trace[2] }),
          ...(!response.writableFinished && { aborted: true }),
        },
        'request',
      );
    });
    next();
  };
}
