import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Request } from 'express';

/**
 * Answers `Expect: 100-continue` (RFC 9110 section 10.1.1) only when the body is about to be read, so that a client
 * whose head is refused never sends the body. request-head.ts refuses every other expectation.
 */
export function deferContinue(server: Server): void {
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response);
  server.on('checkContinue', handle).on('checkExpectation', handle);
}

/** Sends `100 Continue` if the client waits for it. HTTP/1.0 does not have it. */
export function continueReading({ headers, httpVersion, res }: Request): void {
  if (headers.expect !== undefined && httpVersion === '1.1') res?.writeContinue();
}
