import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Load } from '../support/load.js';
import { report } from '../support/report.js';
import { startService, type TestService } from '../support/service.js';

/** Longer than the 10 s for the headers of a request, and than the 5 s after which Node.js closes an idle connection. */
const IDLE_MS = 12_000;

describe('A keep-alive connection', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });

  afterAll(() => service.stop());

  test(
    `may be idle for ${IDLE_MS / 1_000} s between two requests, as those of gateways are`,
    async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      let connections = 0;
      service.app.getHttpServer().on('connection', () => connections++);
      const load = new Load(service.port);
      expect(await load.create(1, agent)).toBe(true);
      await delay(IDLE_MS);
      expect(await load.create(2, agent)).toBe(true);
      report(`A connection idle for ${IDLE_MS / 1_000} s`, { connections, acknowledged: 2 });
      expect(connections).toBe(1);
      agent.destroy();
    },
    IDLE_MS + 30_000,
  );
});
