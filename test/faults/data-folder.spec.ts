import { DataFolder, queryEmbedded } from '../support/data-folder.js';
import { Load } from '../support/load.js';
import { until } from '../support/patience.js';
import { report } from '../support/report.js';
import { needsRoot } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { SmallDisk } from '../support/small-disk.js';
import { undoAfterEach } from '../support/undo.js';

const ROUNDS = 3;
const DISK_MB = 90;
const DISK_LEFT_BYTES = 256 * 1024;
const CONNECTIONS = 16;
const AT_ONCE = 4;

describe('A data folder', () => {
  const folder = new DataFolder();
  const undo = undoAfterEach();

  afterAll(() => folder.remove());

  async function spawn(): Promise<ServiceProcess> {
    const service = await ServiceProcess.spawn({ DATA_DIR: folder.path });
    undo(() => service.end('SIGKILL'));
    return service;
  }

  async function start(): Promise<ServiceProcess> {
    const service = await spawn();
    await service.ready();
    return service;
  }

  test('is refused to a second service while the first one runs or is frozen', async () => {
    const first = await start();
    const refused = async (state: string, holder: string) => {
      const begun = performance.now();
      const second = await spawn();
      expect((await second.exit).code).toBe(1);
      expect(second.output).toContain(`is in use by ${holder}`);
      const elapsed = Math.round(performance.now() - begun);
      report(`A second service on the folder of one that is ${state}`, { 'refused after (ms)': elapsed });
    };
    await refused('running', `process ${first.pid} on `);
    first.child.kill('SIGSTOP');
    undo(() => first.child.kill('SIGCONT'));
    await refused('frozen', `process ${first.pid} on `);
    first.child.kill('SIGCONT');
    expect(await first.probe('ready')).toBe(200);
  });

  test(`goes to exactly one of ${AT_ONCE} services that start at once after a kill`, async () => {
    let holder = await start();
    for (let round = 0; round < ROUNDS; round++) {
      await holder.end('SIGKILL');
      const services = await Promise.all(Array.from({ length: AT_ONCE }, spawn));
      const settled = await Promise.allSettled(services.map((service) => service.ready()));
      const ready = services.filter((_, index) => settled[index]?.status === 'fulfilled');
      const ended = services.filter(({ isRunning }) => !isRunning);
      expect([ready.length, ended.length]).toEqual([1, AT_ONCE - 1]);
      for (const { exit } of ended) expect((await exit).code).toBe(1);
      holder = ready[0] as ServiceProcess;
    }
    report(`${AT_ONCE} services at once on the folder of a killed one`, { rounds: ROUNDS, 'held by two': 0 });
  });

  needsRoot()(
    'on a full disk stores nothing and loses nothing, and works again when there is room',
    async () => {
      const disk = new SmallDisk(DISK_MB);
      undo(() => disk.remove());
      const service = await ServiceProcess.start({ DATA_DIR: disk.folder });
      undo(() => service.end('SIGKILL'));
      const load = new Load(service.port);
      disk.fill(DISK_LEFT_BYTES);
      load.start(CONNECTIONS);
      await until('every connection was answered 503', () => load.unavailable >= 2 * CONNECTIONS);
      await until('the service is not ready', async () => (await service.probe('ready')) === 503);
      expect(await service.probe('live')).toBe(200);
      await load.stop();
      disk.makeRoom();
      expect(await load.create(1_000_000)).toBe(true);
      expect(await service.probe('ready')).toBe(200);
      await load.retry();
      expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
      const lost = await load.lost((sql) => queryEmbedded(disk.folder, sql));
      report('The embedded database on a full disk', {
        acknowledged: load.acknowledged.size,
        lost: lost.length,
        '503, and 200 when sent again': load.unavailable,
      });
      expect({ lost, wrong: load.wrong, open: load.open.size }).toEqual({ lost: [], wrong: [], open: 0 });
    },
  );
});
