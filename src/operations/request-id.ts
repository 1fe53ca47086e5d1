import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

declare module 'express-serve-static-core' {
  interface Request {
    /** Identifies the request in the logs and in the response's X-Request-Id. */
    id: string;
  }
}

const WELL_FORMED = /^[\w.:+/=-]{1,128}$/;

/** @returns the request's `X-Request-Id` if it is well-formed, so that it cannot forge log lines, else a new id. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : randomUUID();
}
