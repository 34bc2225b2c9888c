// Reads by the library's threads, which never enter the runtime: one thread of ours takes what has ended.
//
// A native thread that calls back into Mono is adopted by it for ever, and the process then does not end. So
// there is no callback: a background thread waits in cdd_queue_take. It only does so while reads are under way,
// since Mono does not end either while a thread sleeps in native code.
using System;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Cdd
{
    internal sealed class CompletionQueue
    {
        private static readonly Lazy<CompletionQueue> shared = new Lazy<CompletionQueue>(() => new CompletionQueue());
        public static CompletionQueue Shared => shared.Value;

        private readonly IntPtr queue;
        private readonly SemaphoreSlim begun = new SemaphoreSlim(0);
        private int underWay;  // counted after they were submitted: less than 0 where they were taken before that

        private sealed class Job
        {
            public readonly TaskCompletionSource<bool> Source =
                new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
            public GCHandle Pinned;
            public CancellationTokenRegistration Registration;
            public CancellationToken Token;
        }

        private unsafe CompletionQueue()
        {
            var options = new NativeQueueOptions();
            options.StructSize = (uint)sizeof(NativeQueueOptions);
            var error = Check.NewError();
            Check.Done(Native.cdd_queue_open(&options, out queue, &error), &error);
            new Thread(TakeAll) { IsBackground = true, Name = "cdd" }.Start();
        }

        public unsafe Task Read(ReaderHandle reader, long first, long count, NativeCells? cells, Array rows,
                                CancellationToken token)
        {
            if (token.IsCancellationRequested) return Task.FromCanceled(token);
            var job = new Job { Pinned = GCHandle.Alloc(rows, GCHandleType.Pinned), Token = token };
            GCHandle self = GCHandle.Alloc(job);
            NativeCells given = cells.GetValueOrDefault();
            var error = Check.NewError();
            ulong ticket;
            int status;
            var bytes = (UIntPtr)(ulong)Buffer.ByteLength(rows);
            bool submitted = false;
            try
            {
                status = Native.cdd_queue_read(queue, reader, (ulong)first, (ulong)count,
                                               cells.HasValue ? &given : null,
                                               (void*)job.Pinned.AddrOfPinnedObject(), bytes,
                                               GCHandle.ToIntPtr(self), out ticket, &error);
                submitted = status == (int)Status.Ok;
            }
            finally
            {
                if (!submitted)
                {
                    job.Pinned.Free();
                    self.Free();
                }
            }
            Check.Done(status, &error);
            if (Interlocked.Increment(ref underWay) == 1) begun.Release();
            Task task = job.Source.Task;
            if (token.CanBeCanceled)
            {
                ulong number = ticket;
                job.Registration = token.Register(() => Native.cdd_queue_cancel(queue, number));
                CancellationTokenRegistration registration = job.Registration;
                task.ContinueWith(_ => registration.Dispose(), TaskContinuationOptions.ExecuteSynchronously);
            }
            return task;
        }

        private unsafe void TakeAll()
        {
            const int most = 64;
            var ended = stackalloc NativeCompletion[most];
            while (true)
            {
                begun.Wait();
                while (Volatile.Read(ref underWay) > 0)
                {
                    UIntPtr taken;
                    var error = Check.NewError();
                    if (Native.cdd_queue_take(queue, ended, (UIntPtr)(ulong)most, -1, out taken, &error) !=
                        (int)Status.Ok)
                        return;  // a forked child: its tasks never end, as its threads are gone
                    for (ulong i = 0; i < (ulong)taken; ++i) End(&ended[i]);
                    Interlocked.Add(ref underWay, -(int)taken);
                }
            }
        }

        private static unsafe void End(NativeCompletion* ended)
        {
            GCHandle self = GCHandle.FromIntPtr(ended->User);
            var job = (Job)self.Target;
            self.Free();
            job.Pinned.Free();
            if (ended->Status == (int)Status.Ok) job.Source.TrySetResult(true);
            else if (ended->Status == (int)Status.Cancelled) job.Source.TrySetCanceled();
            else job.Source.TrySetException(new CddException(ended->Status, ended->Error));
        }
    }
}
