import type { IncomingMessage } from 'node:http';

/**
 * How often a field was sent. Of one that must come once, Node keeps the first and forgets the others; a gateway might
 * have read another.
 *
 * @param name in lower case.
 */
export function timesSent({ rawHeaders }: IncomingMessage, name: string): number {
  let times = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) times++;
  }
  return times;
}
