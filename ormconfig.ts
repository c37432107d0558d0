import 'reflect-metadata';
import { fileURLToPath } from 'node:url';
import { DataSource } from 'typeorm';
import { loadConfiguration } from './src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from './src/platform/database/data-source-options.js';

/** For the TypeORM command line: npm run typeorm -- migration:generate -d ormconfig.ts src/migrations/NAME */
export default new DataSource({
  ...dataSourceOptions(loadConfiguration()),
  entities: [fileURLToPath(new URL('./src/**/*.entity.ts', import.meta.url))],
});
