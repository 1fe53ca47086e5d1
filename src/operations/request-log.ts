import { isIP } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { requestIdOf } from './request-id.js';
import type { Refusal } from '../connection/refuse.js';
import type { Metrics } from './metrics.js';

/**
 * W3C Trace Context, section 3.2: version, trace id, parent id, flags. Version ff and ids of zeros are invalid. Only
 * versions after 00 may have more after the flags.
 */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-|$)/;

/** The label of a request that matches no route. */
const UNMATCHED = 'unmatched';

/** RFC 7239 section 6: a node, quoted or not, with its port. */
const FORWARDED_ADDRESS = /^"?(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?"?$/i;

/** nginx's status for a client that disconnected before the response. It is never sent. */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Writes one log line and one observation for each request, when its response has ended. They name the route's
 * template. Of what the client sent, the log has only the method, a well-formed request id, trace ids, the address and
 * the JWT's subject.
 */
export function requestLog(logger: Logger, metrics: Metrics) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const started = performance.now();
    request.id = requestIdOf(request);
    response.on('close', () => {
      const milliseconds = performance.now() - started;
      const route = (request.route as { path: string } | undefined)?.path ?? UNMATCHED;
      const status = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST;
      metrics.observeRequest(request.method, route, status, milliseconds);
      if (!logger.isLevelEnabled('info')) return;
      const trace = TRACEPARENT.exec(String(request.headers.traceparent));
      logger.info(
        {
          requestId: request.id,
          method: request.method,
          route,
          status,
          error: response.locals.error as number | undefined,
          durationMs: Math.round(milliseconds * 1000) / 1000,
          client: addressOf(request.ip),
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

/**
 * @param forwarded the address of a socket, or a trusted proxy's entry of X-Forwarded-For, to which some add a port.
 * @returns the IP address alone, or undefined if there is none.
 */
export function addressOf(forwarded = ''): string | undefined {
  const [, bracketed, dotted] = FORWARDED_ADDRESS.exec(forwarded) ?? [];
  const address = bracketed ?? dotted ?? forwarded;
  return isIP(address) === 0 ? undefined : address;
}

/** The same for a request that is refused before Express sees it. It has no route and no id. */
export function refusalLog(logger: Logger, metrics: Metrics) {
  return ({ method, status, error, client }: Refusal): void => {
    metrics.observeRequest(method ?? 'other', UNMATCHED, status, 0);
    logger.info({ method, route: UNMATCHED, status, error, client }, 'request');
  };
}
