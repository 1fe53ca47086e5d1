import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { queryEmbedded } from '../support/data-folder.js';
import { Load } from '../support/load.js';
import { report } from '../support/report.js';
import { ServiceProcess } from '../support/service-process.js';
import { SyncedDisk } from '../support/synced-disk.js';

const CONNECTIONS = 16;
const CUTS_UNDER_LOAD = 8;
const SHORTEST_LOAD_MS = 100;
const LONGER_EACH_TIME_MS = 80;
const FIRST_START_STEP_MS = 50;
const TIME_LIMIT_MS = 300_000;

// The tests use one service on one disk, in this order.
describe('The embedded database', () => {
  const disk = new SyncedDisk();
  const dataDir = join('new', 'data');
  let service: ServiceProcess;
  let load: Load;
  /** Copies of the data folder as a power cut during the first start would leave it, by the names in the folder. */
  const cutsOfTheFirstStart = new Map<string, string>();

  beforeAll(async () => {
    service = await ServiceProcess.spawn({ ...disk.env, DATA_DIR: join(disk.root, dataDir) });
    const ready = service.ready(TIME_LIMIT_MS).then(() => true);
    while (!(await Promise.race([ready, delay(FIRST_START_STEP_MS, false)]))) {
      const copy = cut();
      const names = existsSync(copy) ? readdirSync(copy) : ['no folder'];
      cutsOfTheFirstStart.set(names.map((name) => name.replace(/\.\w+$/, '')).join(' '), copy);
    }
    load = new Load(service.port);
  }, TIME_LIMIT_MS);

  afterAll(async () => {
    await service.end('SIGKILL');
    disk.remove();
  });

  /** @returns a copy of the data folder as a power cut at this moment would leave it. The service keeps running. */
  function cut(): string {
    service.child.kill('SIGSTOP');
    try {
      return join(disk.copyAfterPowerCut(), dataDir);
    } finally {
      service.child.kill('SIGCONT');
    }
  }

  /** Starts another service on a data folder, creates a plant, and stops it. */
  async function startOn(folder: string, id: number): Promise<void> {
    const survivor = await ServiceProcess.spawn({ DATA_DIR: folder });
    try {
      await survivor.ready(TIME_LIMIT_MS);
      expect(await new Load(survivor.port).create(id)).toBe(true);
      expect((await survivor.end('SIGTERM')).code).toBe(0);
    } finally {
      await survivor.end('SIGKILL');
    }
  }

  test(
    'starts after a power cut at any moment of its first start',
    async () => {
      expect(cutsOfTheFirstStart.size).toBeGreaterThan(0);
      for (const folder of cutsOfTheFirstStart.values()) await startOn(folder, 1);
      report('Power cut during the first start', {
        'disks left': [...cutsOfTheFirstStart.keys()].join(', or '),
        'starts that failed': 0,
      });
    },
    TIME_LIMIT_MS,
  );

  test(
    `loses no acknowledged plant in ${CUTS_UNDER_LOAD} power cuts under load`,
    async () => {
      const lost: number[] = [];
      for (let moment = 0; moment < CUTS_UNDER_LOAD; moment++) {
        load.start(CONNECTIONS);
        // Otherwise the power could fail before the load has begun.
        await load.more(CONNECTIONS);
        await delay(SHORTEST_LOAD_MS + moment * LONGER_EACH_TIME_MS);
        const acknowledged = new Set(load.acknowledged);
        const folder = cut();
        await load.stop();
        await startOn(folder, 1_000_000);
        const missing = await load.lost((sql) => queryEmbedded(folder, sql));
        lost.push(...missing.filter((id) => acknowledged.has(id)));
      }
      report('Power cut under load, embedded database', {
        cuts: CUTS_UNDER_LOAD,
        acknowledged: load.acknowledged.size,
        lost: lost.length,
      });
      expect({ lost, wrong: load.wrong }).toEqual({ lost: [], wrong: [] });
    },
    TIME_LIMIT_MS,
  );

  test(
    'ends the service if an fsync fails, and the next start has every acknowledged plant',
    async () => {
      disk.fail();
      expect(await load.create(1_000_001)).toBe(false);
      expect(await service.exit).toEqual({ code: 1, signal: null });
      expect(service.output).toContain('The embedded database cannot go on');
      const folder = join(disk.root, dataDir);
      await startOn(folder, 1_000_002);
      expect(await load.lost((sql) => queryEmbedded(folder, sql))).toEqual([]);
    },
    TIME_LIMIT_MS,
  );
});
