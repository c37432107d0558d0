import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg } from 'node:os';
import type { Connection, RowDataPacket } from 'mysql2/promise';

type Cell = string | number | undefined;
/** Rows by their names. */
export type Table = Record<string, Record<string, Cell>>;

const loadBefore = loadavg()[0] ?? 0;

/** One sentence with the command, the machine, the versions and the database's memory and disk. */
export async function describeRun(command: string, connection: Connection): Promise<string> {
  const variables = 'VERSION() AS version, @@innodb_buffer_pool_size AS pool, @@datadir AS folder';
  const [[row]] = await connection.query<RowDataPacket[]>(`SELECT ${variables}`);
  const [, disk] = execFileSync('df', ['--output=source,fstype', row?.folder], { encoding: 'utf8' }).split('\n');
  return (
    `Run of \`${command}\` on ${new Date().toISOString().slice(0, 10)}: ${availableParallelism()} processors ` +
    `(${cpus()[0]?.model.trim()}), Node ${process.versions.node}, MariaDB ${row?.version.split('-')[0]} with ` +
    `a buffer pool of ${row?.pool / 2 ** 20} MiB on ${disk?.trim().replace(/\s+/, ' with ')}, ` +
    `load average ${loadBefore.toFixed(1)} before the run.`
  );
}

/** The table of a page, in Markdown. */
export function markdownTable(rows: Table): string {
  const columns = [...new Set(Object.values(rows).flatMap((row) => Object.keys(row)))];
  const line = (cells: Cell[]) => `| ${cells.map(cellText).join(' | ')} |`;
  const body = Object.entries(rows).map(([name, row]) => line([name, ...columns.map((column) => row[column])]));
  return [line(['', ...columns]), `|${'---|'.repeat(columns.length + 1)}`, ...body]
    .join('\n')
    .replaceAll('|  |', '| |');
}

function cellText(value: Cell): string {
  return typeof value === 'number' ? value.toLocaleString('en-US') : (value ?? '');
}
