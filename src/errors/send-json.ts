import type { ServerResponse } from 'node:http';

/** Answers with a JSON value. */
export function sendJson(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value);
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', length]);
  response.end(body);
}
