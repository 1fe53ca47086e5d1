import type { ServerResponse } from 'node:http';

/** Answers with a JSON value, and with headers in addition to those of the body. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = JSON.stringify(value);
  const length = String(Buffer.byteLength(body));
  const head = ['Content-Type', 'application/json', 'Content-Length', length];
  for (const name in headers) head.push(name, headers[name] as string);
  response.writeHead(status, head);
  response.end(body);
}
