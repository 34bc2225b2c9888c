// Appends rows to one store.
using System;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Cdd
{
    internal sealed class WriterHandle : SafeHandle
    {
        public WriterHandle() : base(IntPtr.Zero, true) { }
        public WriterHandle(IntPtr given) : base(IntPtr.Zero, true) { SetHandle(given); }
        public override bool IsInvalid => handle == IntPtr.Zero;

        protected override unsafe bool ReleaseHandle() => Native.cdd_writer_close(handle, null) == 0;

        /// <summary>The pointer, which from now on is the caller's to close.</summary>
        public IntPtr Take()
        {
            IntPtr taken = handle;
            SetHandleAsInvalid();
            return taken;
        }
    }

    /// <summary>Whether what is there stays.</summary>
    public enum Mode
    {
        /// <summary>A new store takes the place of what is there.</summary>
        Replace = 'w',
        /// <summary>An error where something is there.</summary>
        Create = 'x',
        /// <summary>Rows are added to the store that is there, or to a new one.</summary>
        Append = 'a'
    }

    /// <summary>What survives a power cut, and how often the disk is synced.</summary>
    public enum Durability { Batch, None, Flush, Always }

    /// <summary>Options of a writer. Those that are left out are the library's defaults.</summary>
    public sealed class WriterOptions
    {
        public Layout Layout;
        public string Codec;
        public byte[] UserMeta;
        public bool Dense;
        public Durability Durability;
        public int ZstdLevel, ChunkBytes, ChunkRows;
        public bool VisibleAtClose;
    }

    /// <summary>Appends rows to one store. One thread at a time gets in.</summary>
    public sealed class Writer : IDisposable
    {
        private readonly object gate = new object();
        private readonly WriterHandle handle;
        private bool closed;

        private Writer(WriterHandle handle) { this.handle = handle; }

        /// <summary>A new store in place of what is there.</summary>
        public static Writer Create(string path, WriterOptions options = null) => Open(path, Mode.Replace, options);

        /// <summary>Opens a store for writing.</summary>
        public static unsafe Writer Open(string path, Mode mode, WriterOptions options = null)
        {
            if (options == null) options = new WriterOptions();
            var native = new NativeWriterOptions
            {
                Mode = (uint)mode, Profile = options.Dense ? 1u : 0u, Durability = (uint)options.Durability,
                ZstdLevel = (uint)options.ZstdLevel, ChunkBytes = (uint)options.ChunkBytes,
                ChunkRows = (uint)options.ChunkRows, VisibleAtClose = options.VisibleAtClose ? 1u : 0u,
            };
            native.StructSize = (uint)sizeof(NativeWriterOptions);
            NativeLayout layout = options.Layout == null ? new NativeLayout() : options.Layout.ToNative();
            if (options.Layout != null) native.Layout = &layout;
            byte[] codec = options.Codec == null ? null : Check.Path(options.Codec);
            byte[] meta = options.UserMeta ?? new byte[0];
            var error = Check.NewError();
            IntPtr made;
            fixed (byte* text = Check.Path(path))
            fixed (byte* name = codec)
            fixed (byte* bytes = meta)
            {
                native.Codec = name;
                native.UserMeta = bytes;
                native.UserMetaBytes = (UIntPtr)(ulong)meta.Length;
                Check.Done(Native.cdd_writer_open(text, &native, out made, &error), &error);
            }
            return new Writer(new WriterHandle(made));
        }

        /// <summary>Rows in the store, those that wait in memory included.</summary>
        public long Rows => (long)Native.cdd_writer_rows(handle);

        /// <summary>Adds rows, one after the other in the array: all of them or none.</summary>
        public unsafe void Append<T>(Layout layout, T[] rows) where T : struct
        {
            if (rows == null) throw new ArgumentNullException(nameof(rows));
            if (layout == null) throw new ArgumentNullException(nameof(layout));
            CheckRows(layout, typeof(T), rows.Length, Item<T>.Bytes);
            GCHandle pinned = GCHandle.Alloc(rows, GCHandleType.Pinned);
            try { Append(layout, (void*)pinned.AddrOfPinnedObject(), (long)rows.Length * Item<T>.Bytes); }
            finally { pinned.Free(); }
        }

#if NET8_0_OR_GREATER
        /// <summary>Adds rows, one after the other in memory: all of them or none.</summary>
        public unsafe void Append<T>(Layout layout, ReadOnlySpan<T> rows) where T : unmanaged
        {
            if (layout == null) throw new ArgumentNullException(nameof(layout));
            CheckRows(layout, typeof(T), rows.Length, sizeof(T));
            fixed (T* from = rows) Append(layout, from, rows.Length * (long)sizeof(T));
        }
#endif

        private unsafe void Append(Layout layout, void* rows, long bytes)
        {
            NativeLayout native = layout.ToNative();
            var error = Check.NewError();
            ulong count = (ulong)(bytes / ((long)layout.RowItems * layout.ItemBytes));
            lock (gate) Check.Done(Native.cdd_append(handle, &native, rows, count, &error), &error);
        }

        private static void CheckRows(Layout layout, Type item, int there, int bytes)
        {
            layout.CheckItem(item, bytes);
            if (there % layout.RowItems != 0)
                throw new ArgumentException(there + " items are no whole rows of " + layout.RowItems);
        }

        /// <summary>Writes rows that wait, and returns when all are on the disk.</summary>
        public unsafe void Flush()
        {
            var error = Check.NewError();
            lock (gate) Check.Done(Native.cdd_flush(handle, &error), &error);
        }

        /// <summary>Append, by a thread of the library, in the order of the calls: the array is its until the task
        /// ends. A token that is cancelled takes it back, unless it has begun.</summary>
        public Task AppendAsync<T>(Layout layout, T[] rows, CancellationToken token = default(CancellationToken))
            where T : struct
        {
            if (rows == null) throw new ArgumentNullException(nameof(rows));
            if (layout == null) throw new ArgumentNullException(nameof(layout));
            CheckRows(layout, typeof(T), rows.Length, Item<T>.Bytes);
            return BeginAppend(layout, rows, rows.Length / layout.RowItems, token);
        }

        private unsafe Task BeginAppend(Layout layout, Array rows, long count, CancellationToken token)
        {
            lock (gate)
                return CompletionQueue.Shared.Begin(
                    rows, token, (IntPtr queue, void* at, IntPtr user, out ulong ticket, NativeError* error) =>
                {
                    NativeLayout native = layout.ToNative();
                    return Native.cdd_queue_append(queue, handle, &native, at, (ulong)count, user, out ticket, error);
                });
        }

        /// <summary>Flush, by a thread of the library, after all that was begun before.</summary>
        public unsafe Task FlushAsync(CancellationToken token = default(CancellationToken))
        {
            lock (gate)
                return CompletionQueue.Shared.Begin(
                    null, token, (IntPtr queue, void* at, IntPtr user, out ulong ticket, NativeError* error) =>
                        Native.cdd_queue_flush(queue, handle, user, out ticket, error));
        }

        /// <summary>Flush, and lets go of the store, also where that fails. Again: nothing.</summary>
        public unsafe void Close()
        {
            lock (gate)
            {
                if (closed) return;
                closed = true;
                var error = Check.NewError();
                Check.Done(Native.cdd_writer_close(handle.Take(), &error), &error);
            }
        }

        /// <summary>Close.</summary>
        public void Dispose() => Close();
    }
}
