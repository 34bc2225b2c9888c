// The rows of one store, read by range.
using System;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Cdd
{
    internal sealed class ReaderHandle : SafeHandle
    {
        public ReaderHandle() : base(IntPtr.Zero, true) { }
        public ReaderHandle(IntPtr given) : base(IntPtr.Zero, true) { SetHandle(given); }
        public override bool IsInvalid => handle == IntPtr.Zero;

        protected override bool ReleaseHandle()
        {
            Native.cdd_reader_close(handle);
            return true;
        }
    }

    /// <summary>What each read checks.</summary>
    public enum Checks { Stored, None, Full }

    /// <summary>Levels and features of each row of a book: begin to end, the end not included.</summary>
    public struct Cells
    {
        public int LevelBegin, LevelEnd, FeatureBegin, FeatureEnd;

        public Cells(int levelBegin, int levelEnd, int featureBegin, int featureEnd)
        {
            LevelBegin = levelBegin;
            LevelEnd = levelEnd;
            FeatureBegin = featureBegin;
            FeatureEnd = featureEnd;
        }

        internal long Items => checked((long)(LevelEnd - LevelBegin) * (FeatureEnd - FeatureBegin));
    }

    /// <summary>The rows of one store. Any thread may call any method; reads go on when it is disposed of
    /// meanwhile. Rows are written into the caller's array, with no other copy.</summary>
    public sealed class Reader : IDisposable
    {
        private readonly ReaderHandle handle;
        private Layout layout;

        private Reader(ReaderHandle handle) { this.handle = handle; }

        /// <summary>Opens a store. CddException with Status.Io where there is none.</summary>
        public static unsafe Reader Open(string path, Checks checks = Checks.Stored, long maxChunkBytes = 0)
        {
            var options = new NativeReaderOptions { Check = (uint)checks, MaxChunkBytes = (ulong)maxChunkBytes };
            options.StructSize = (uint)sizeof(NativeReaderOptions);
            var error = Check.NewError();
            IntPtr made;
            fixed (byte* text = Check.Path(path))
                Check.Done(Native.cdd_reader_open(text, &options, out made, &error), &error);
            return new Reader(new ReaderHandle(made));
        }

        /// <summary>Rows that are seen; Refresh sees more.</summary>
        public long Rows => (long)Native.cdd_reader_rows(handle);

        /// <summary>What rows are; null as long as nothing was appended.</summary>
        public unsafe Layout Layout
        {
            get
            {
                if (layout == null)
                {
                    NativeInfo info = Info();
                    if (info.Layout.Dtype != 0) layout = new Layout(&info.Layout);
                }
                return layout;
            }
        }

        /// <summary>Bytes of the file.</summary>
        public long StoredBytes => (long)Info().StoredBytes;
        /// <summary>How many chunks there are.</summary>
        public long Chunks => (long)Info().Chunks;
        /// <summary>Whether the path now names another file.</summary>
        public bool Replaced => Info().Replaced != 0;

        /// <summary>32 hex digits that no other store has.</summary>
        public unsafe string Id
        {
            get
            {
                NativeInfo info = Info();
                var text = new System.Text.StringBuilder();
                for (int i = 0; i < 16; ++i) text.Append(info.Id[i].ToString("x2"));
                return text.ToString();
            }
        }

        /// <summary>The bytes that were kept with the store when it was made.</summary>
        public unsafe byte[] UserMeta()
        {
            var found = new byte[checked((int)Info().UserMetaBytes)];
            var error = Check.NewError();
            fixed (byte* to = found)
                Check.Done(Native.cdd_reader_user_meta(handle, to, (UIntPtr)(ulong)found.Length, &error), &error);
            return found;
        }

        private unsafe NativeInfo Info()
        {
            var info = new NativeInfo();
            info.StructSize = (uint)sizeof(NativeInfo);
            var error = Check.NewError();
            Check.Done(Native.cdd_reader_info(handle, &info, &error), &error);
            return info;
        }

        /// <summary>Rows [first, first + count) into a new array.</summary>
        public T[] Read<T>(long first, long count, Cells? cells = null) where T : struct
        {
            var rows = new T[checked((int)Items(count, cells))];
            Read(first, count, rows, cells);
            return rows;
        }

        /// <summary>Rows [first, first + count) into an array that has just their items.</summary>
        public unsafe void Read<T>(long first, long count, T[] rows, Cells? cells = null) where T : struct
        {
            ulong bytes = CheckRows(rows, nameof(rows), count, cells);
            GCHandle pinned = GCHandle.Alloc(rows, GCHandleType.Pinned);
            try { Read(first, count, (void*)pinned.AddrOfPinnedObject(), bytes, cells); }
            finally { pinned.Free(); }
        }

#if NET8_0_OR_GREATER
        /// <summary>Rows [first, first + count) into memory that has just their items.</summary>
        public unsafe void Read<T>(long first, long count, Span<T> rows, Cells? cells = null) where T : unmanaged
        {
            ulong bytes = CheckRows(typeof(T), rows.Length, sizeof(T), count, cells);
            fixed (T* to = rows) Read(first, count, to, bytes, cells);
        }
#endif

        private unsafe void Read(long first, long count, void* to, ulong bytes, Cells? cells)
        {
            NativeCells given;
            bool has = Given(cells, out given);
            var error = Check.NewError();
            Check.Done(Native.cdd_read(handle, (ulong)first, (ulong)count, has ? &given : null, to, (UIntPtr)bytes,
                                       &error), &error);
        }

        /// <summary>Windows of `rows` rows from each start, one after the other, into an array that has just
        /// their items.</summary>
        public unsafe void ReadWindows<T>(long[] starts, long rows, T[] windows, Cells? cells = null) where T : struct
        {
            if (starts == null) throw new ArgumentNullException(nameof(starts));
            ulong bytes = CheckRows(windows, nameof(windows), checked(starts.LongLength * rows), cells);
            NativeCells given;
            bool has = Given(cells, out given);
            var error = Check.NewError();
            GCHandle pinned = GCHandle.Alloc(windows, GCHandleType.Pinned);
            try
            {
                fixed (long* from = starts)
                    Check.Done(Native.cdd_read_windows(handle, (ulong*)from, (UIntPtr)(ulong)starts.LongLength,
                                                       (ulong)rows, has ? &given : null,
                                                       (void*)pinned.AddrOfPinnedObject(), (UIntPtr)bytes, &error),
                               &error);
            }
            finally { pinned.Free(); }
        }

        /// <summary>Read, by a thread of the library: the array is its until the task ends. A token that is
        /// cancelled takes the read back, unless it has begun: then it ends first.</summary>
        public Task ReadAsync<T>(long first, long count, T[] rows, Cells? cells = null,
                                 CancellationToken token = default(CancellationToken)) where T : struct
        {
            CheckRows(rows, nameof(rows), count, cells);
            NativeCells given;
            bool has = Given(cells, out given);
            return BeginRead(first, count, has, given, rows, token);
        }

        private unsafe Task BeginRead(long first, long count, bool has, NativeCells cells, Array rows,
                                      CancellationToken token)
        {
            var bytes = (UIntPtr)(ulong)Buffer.ByteLength(rows);
            return CompletionQueue.Shared.Begin(
                rows, token, (IntPtr queue, void* at, IntPtr user, out ulong ticket, NativeError* error) =>
            {
                NativeCells given = cells;
                return Native.cdd_queue_read(queue, handle, (ulong)first, (ulong)count, has ? &given : null, at, bytes,
                                             user, out ticket, error);
            });
        }

        /// <summary>Sees rows that were appended since. Returns how many rows there are.</summary>
        public unsafe long Refresh()
        {
            ulong rows;
            var error = Check.NewError();
            Check.Done(Native.cdd_refresh(handle, out rows, &error), &error);
            return (long)rows;
        }

        /// <summary>Waits until there are more rows than `seen`, and returns how many; `seen` after so many
        /// milliseconds (-1: never), or where the file was replaced.</summary>
        public unsafe long Follow(long seen, long timeoutMilliseconds)
        {
            ulong rows;
            var error = Check.NewError();
            int status = Native.cdd_follow(handle, (ulong)seen, timeoutMilliseconds, out rows, &error);
            if (status != (int)Status.TimedOut) Check.Done(status, &error);
            return (long)rows;
        }

        /// <summary>Follow, which takes no thread while it waits. A token that is cancelled ends it. Under Mono a
        /// process does not end while one waits: cancel it before.</summary>
        public async Task<long> FollowAsync(long seen, long timeoutMilliseconds = -1,
                                            CancellationToken token = default(CancellationToken))
        {
            try { await BeginFollow(seen, timeoutMilliseconds, token).ConfigureAwait(false); }
            catch (CddException late) when (late.Status == Status.TimedOut) { }
            return Rows;
        }

        private unsafe Task BeginFollow(long seen, long timeoutMilliseconds, CancellationToken token)
        {
            return CompletionQueue.Shared.Begin(
                null, token, (IntPtr queue, void* at, IntPtr user, out ulong ticket, NativeError* error) =>
                    Native.cdd_queue_follow(queue, handle, (ulong)seen, timeoutMilliseconds, user, out ticket, error));
        }

        private long Items(long count, Cells? cells)
        {
            if (count < 0) throw new ArgumentOutOfRangeException(nameof(count), "is " + count);
            if (Layout == null) throw new InvalidOperationException("nothing was appended yet: rows have no layout");
            return checked(count * (cells.HasValue ? cells.Value.Items : Layout.RowItems));
        }

        // Bytes of an array, which has just the items of so many rows.
        private ulong CheckRows<T>(T[] rows, string name, long count, Cells? cells) where T : struct
        {
            if (rows == null) throw new ArgumentNullException(name);
            return CheckRows(typeof(T), rows.Length, Item<T>.Bytes, count, cells);
        }

        private ulong CheckRows(Type item, int there, int bytes, long count, Cells? cells)
        {
            long wanted = Items(count, cells);
            Layout.CheckItem(item, bytes);
            if (there != wanted)
                throw new ArgumentException(count + " rows have " + wanted + " items, the array has " + there);
            return (ulong)there * (ulong)bytes;
        }

        private static bool Given(Cells? cells, out NativeCells given)
        {
            given = new NativeCells();
            if (!cells.HasValue) return false;
            Cells c = cells.Value;
            given.LevelBegin = (uint)c.LevelBegin;
            given.LevelEnd = (uint)c.LevelEnd;
            given.FeatureBegin = (uint)c.FeatureBegin;
            given.FeatureEnd = (uint)c.FeatureEnd;
            return true;
        }

        /// <summary>Lets go of the store, once calls under way have ended.</summary>
        public void Dispose() => handle.Dispose();
    }
}
