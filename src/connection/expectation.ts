import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Answers `Expect: 100-continue` (RFC 9110 section 10.1.1) only when the body is about to be read, so that a client
 * whose head is refused never sends the body. request-head.ts refuses every other expectation.
 */
export function deferContinue(server: Server): void {
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  };
  server.on('checkContinue', handle).on('checkExpectation', handle);
}

/** Sends `100 Continue` if the client waits for it. */
export function continueReading(request: IncomingMessage): void {
  const response = waiting.get(request);
  if (response === undefined) return;
  waiting.delete(request);
  response.writeContinue();
}
