// Calls by the library's threads, which never enter the runtime: one thread of ours takes what has ended.
//
// A native thread that calls back into Mono is adopted by it for ever, and the process then does not end. So
// there is no callback: a background thread waits in cdd_queue_take. It only does so while calls are under way,
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

            public void Unpin()
            {
                if (Pinned.IsAllocated) Pinned.Free();
            }
        }

        private unsafe CompletionQueue()
        {
            var options = new NativeQueueOptions();
            options.StructSize = (uint)sizeof(NativeQueueOptions);
            var error = Check.NewError();
            Check.Done(Native.cdd_queue_open(&options, out queue, &error), &error);
            new Thread(TakeAll) { IsBackground = true, Name = "cdd" }.Start();
        }

        /// <summary>Submits one call; `rows` is where the array is pinned, null without one.</summary>
        public unsafe delegate int Submit(IntPtr queue, void* rows, IntPtr user, out ulong ticket, NativeError* error);

        /// <summary>A task of what `submit` submits; the array is pinned until it ends.</summary>
        public unsafe Task Begin(Array rows, CancellationToken token, Submit submit)
        {
            if (token.IsCancellationRequested) return Task.FromCanceled(token);
            var job = new Job();
            void* at = null;
            if (rows != null)
            {
                job.Pinned = GCHandle.Alloc(rows, GCHandleType.Pinned);
                at = (void*)job.Pinned.AddrOfPinnedObject();
            }
            GCHandle self = GCHandle.Alloc(job);
            var error = Check.NewError();
            ulong ticket;
            int status;
            bool submitted = false;
            try
            {
                status = submit(queue, at, GCHandle.ToIntPtr(self), out ticket, &error);
                submitted = status == (int)Status.Ok;
            }
            finally
            {
                if (!submitted)
                {
                    job.Unpin();
                    self.Free();
                }
            }
            Check.Done(status, &error);
            if (Interlocked.Increment(ref underWay) == 1) begun.Release();
            Task task = job.Source.Task;
            if (token.CanBeCanceled)
            {
                ulong number = ticket;
                CancellationTokenRegistration registration =
                    token.Register(() => Native.cdd_queue_cancel(queue, number));
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
            job.Unpin();
            if (ended->Status == (int)Status.Ok) job.Source.TrySetResult(true);
            else if (ended->Status == (int)Status.Cancelled) job.Source.TrySetCanceled();
            else job.Source.TrySetException(new CddException(ended->Status, ended->Error));
        }
    }
}
