import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Failure } from '../errors/failure.js';
import { isIgnored } from './lingering-close.js';
import type { Refuse } from './refuse.js';

/**
 * RFC 9110 section 7.2: a host with or without a port, or nothing. The marks that RFC 3986 allows in a name too are in no
 * name that exists, and a comma would be what a proxy makes of two Hosts.
 */
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;
/** A request target in absolute form (RFC 9112 section 3.2.2), which every server must take. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/i;

/**
 * Refuses, before Express sees it, what Node's HTTP parser lets pass though another reader of the same bytes (a gateway)
 * might see another request, or none.
 */
export function refuseMalformedHeads(server: Server, refuse: Refuse): void {
  const [handle] = server.listeners('request') as [RequestListener];
  server.removeListener('request', handle).on('request', (request: IncomingMessage, response) => {
    if (isIgnored(request.socket)) return;
    if (request.url?.startsWith('/') === false) toOriginForm(request);
    const fault = faultOf(request);
    if (fault === undefined) handle.call(server, request, response);
    else refuse(new Failure(400, fault), { socket: request.socket, response });
  });
}

/** Express could not route some targets of the absolute form, and would answer in a shape of its own. */
function toOriginForm(request: IncomingMessage): void {
  const [, host, pathAndQuery = ''] = ABSOLUTE_FORM.exec(request.url as string) ?? [];
  if (host === undefined || !HOST.test(host)) return;
  request.url = pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
}

function faultOf({ httpVersion, url = '', headers, rawHeaders }: IncomingMessage): string | undefined {
  const isCurrent = httpVersion === '1.1';
  if (!isCurrent && httpVersion !== '1.0') return 'The HTTP version must be 1.1 or 1.0';

  // RFC 9112 section 3.2: `*` is the server as a whole, a fragment is never sent.
  if ((!url.startsWith('/') && url !== '*') || url.includes('#'))
    return 'The request target must be a path, with or without a query';

  let hosts = 0;
  let contentTypes = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 12 && name.toLowerCase() === 'content-type') contentTypes++;
  }
  if (hosts === 0 && isCurrent) return 'Host is missing';
  if (hosts > 1) return 'Host must be sent once';
  if (!HOST.test(headers.host ?? '')) return 'Host must be a host name or address, with or without a port';
  // Node keeps the first and forgets the others.
  if (contentTypes > 1) return 'Content-Type must be sent once';

  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    // RFC 9112 section 6.1: HTTP/1.0 knows no Transfer-Encoding, so what reads it as such may cut the message elsewhere.
    if (!isCurrent) return 'A request of HTTP/1.0 must not have Transfer-Encoding';
    // Node decodes this one, and passes the others on as if they were decoded.
    if (coding.toLowerCase() !== 'chunked') return 'Transfer-Encoding must be chunked, and nothing else';
  }
  return undefined;
}
