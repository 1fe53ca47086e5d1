import { migrate } from './migrate.js';

// `npm run db:migrate`, and the step before the replicas where MIGRATIONS=off: needs the environment of the service.
try {
  const { dataSource } = await import('./cli-data-source.js');
  await dataSource.initialize();
  const executed = await migrate(dataSource);
  await dataSource.destroy();
  console.log(executed.length === 0 ? 'Nothing to migrate.' : `Migrated: ${executed.join(', ')}`);
} catch (error) {
  console.error(`The database was not migrated: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
